"""What the papers' experiments share: problems, learners, tasks, results kept, pages."""
