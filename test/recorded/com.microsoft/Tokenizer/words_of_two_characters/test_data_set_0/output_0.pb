2one2two2
three,four2five2#2#2...2#2Fluß2naïve2a
b2#2	日本語222By0