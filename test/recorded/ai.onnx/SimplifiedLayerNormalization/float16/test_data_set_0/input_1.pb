
BscaleJT4º)»·Û8÷¹z¯©6³8