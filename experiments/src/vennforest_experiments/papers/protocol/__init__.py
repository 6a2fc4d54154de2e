"""What the papers' experiments share: problems, learners, tasks, stored results, pages."""
