
Bx1Jb0