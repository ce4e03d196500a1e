"""The console: what people see of Dragoman in a browser. Above: nobody. Below: the use cases."""
