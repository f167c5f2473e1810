"""Loading: reads the data that users pass; every kind of data has a module, and `readers` lists them."""
