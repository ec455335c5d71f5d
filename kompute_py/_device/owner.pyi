from .._manager.manager import Manager as Manager
from .device import Device

def owner(device: Device) -> Manager: ...

class Owned:
    @property
    def manager(self) -> Manager: ...
    _manager: Device

class Named(Owned):
    @property
    def name(self) -> str: ...
    @name.setter
    def name(self, value: str) -> None: ...
