
Bx0J<{òàfz#¸v1•ttP¢¬:áx+ä©r@aCN³¾#A—lÅZŒyô3Ú£›ãPgPÉ([ª4ýfO