Bwords_scaleJ
×#<