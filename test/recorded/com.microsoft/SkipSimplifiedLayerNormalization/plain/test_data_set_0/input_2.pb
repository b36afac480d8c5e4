BgammaJ }?]p#¿IHM¿9S¿ãÓ¶¾aT?ip_½£'
¼