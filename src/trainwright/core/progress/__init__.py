"""What a training says about itself: reading it, checking it, and when to write it down."""
