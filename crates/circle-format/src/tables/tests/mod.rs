mod hostile;
mod wire;
