from .generic import assert_faithful as assert_faithful
