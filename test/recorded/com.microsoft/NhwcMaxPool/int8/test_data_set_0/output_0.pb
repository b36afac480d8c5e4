By0JvæiW>òWx?&x?Ti×-iLKce{óe{fd|fc|i|ibOna{pa~pc~nc|u|ui2iapPapi:
i>uã>um{q!{?!?ydàykàkm{vw{vwJvzxvzxlúlmtvm{J{zTvzbliblXtz|{|{^î?^Ï?ÝÏ³