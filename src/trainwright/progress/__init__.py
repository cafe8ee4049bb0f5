"""The status server: trainings post their progress, TrainJobs show it. A thin shell."""
