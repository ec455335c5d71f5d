from .._manager.manager import Manager as Manager
from .device import Device

def owner(device: Device) -> Manager: ...
