	ByJqh
,Ñl=y