"""Loading: what users hand over as data, one module for every family of them; `readers` knows them all."""
