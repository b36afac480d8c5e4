B
gamma_zeroJ„