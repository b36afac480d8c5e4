
BbiasJö¹l8c.å0Ú:CºÓ187