"""Manifests of older Trainers in today's form: pure functions of one object, used at admission.

Fields that Trainer 2.0 to 2.2 had and 2.3 would silently drop are moved to where they act today, or
dropped with a warning. Nothing here reads another object or decides what a TrainJob does.
"""
