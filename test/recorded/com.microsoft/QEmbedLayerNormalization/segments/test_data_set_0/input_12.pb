B
beta_scaleJX9´<