from .replay import CertifiedScore as CertifiedScore, EndpointReplay as EndpointReplay
from .servers import (
    Connection as Connection,
    KnownTokens as KnownTokens,
    ReplayServer as ReplayServer,
    SglangServer as SglangServer,
    VllmServer as VllmServer,
)
