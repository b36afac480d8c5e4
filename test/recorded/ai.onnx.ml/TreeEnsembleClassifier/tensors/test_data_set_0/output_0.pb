
2a2a2a2a2a2a2c2a2a2aBY