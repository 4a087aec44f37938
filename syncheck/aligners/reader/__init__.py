"""The reader: a pretrained encoder that reads passages and claim; its network, layers and windows."""
