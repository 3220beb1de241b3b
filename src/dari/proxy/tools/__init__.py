from dari.proxy.tools.toolkit import ProxyTools

__all__ = ["ProxyTools"]
