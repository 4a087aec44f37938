from .connection import Connection as Connection
from .replay import CertifiedScore as CertifiedScore, EndpointReplay as EndpointReplay
from .servers import (
    KnownTokens as KnownTokens,
    ReplayServer as ReplayServer,
    SglangServer as SglangServer,
    VllmServer as VllmServer,
)
