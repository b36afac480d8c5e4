BbetaJ —ÁX¿Ò{¿n³¢¾
ŸÂ>0Gz?W$^½Þ¦„>Oh¿