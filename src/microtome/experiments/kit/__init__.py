"""What experiments share; knows no paper."""
