# Applies a calibrator that vennforest has written as JSON.
#   source("calibrator.R"); apply_calibrator(read_calibrator("calibrator.json"), c(0.2, 0.7))
# Of more than two classes scores are a matrix with a column for each.
library(jsonlite)

read_calibrator <- function(path) {
  document <- fromJSON(path, simplifyVector = FALSE)
  if (document$format != "vennforest-calibrator" || document$version != 1 ||
      is.null(document$reading))
    stop(path, " must be a calibrator with formulas")
  document$reading
}

operations <- list(
  add = `+`, subtract = `-`, multiply = `*`, divide = `/`, min = pmin, max = pmax,
  log = function(a) suppressWarnings(log(a)), exp = exp, floor = floor,
  "if <=" = function(a, b, here, above) ifelse(a <= b, here, above)
)

apply_calibrator <- function(reading, scores) {
  scores <- as.matrix(scores)
  taken <- rowSums(is.na(scores) | scores < reading$low | scores > reading$high) == 0
  if (!is.null(reading$sum_within))
    taken <- taken & abs(rowSums(scores) - 1) <= reading$sum_within
  scores[!(taken %in% TRUE), ] <- NA
  values <- list()
  for (term in reading$terms) {
    of <- term[-1]
    at <- function(i) values[[as.integer(of[[i]]) + 1]]
    values[[length(values) + 1]] <- switch(term[[1]],
      score = scores[, as.integer(of[[1]]) + 1],
      number = rep(as.numeric(of[[1]]), nrow(scores)),
      "look up" = {
        table <- reading$tables[[as.integer(of[[2]]) + 1]]
        unlist(table[[of[[3]]]])[findInterval(at(1), unlist(table$start))]
      },
      do.call(operations[[term[[1]]]], lapply(seq_along(of), at))
    )
  }
  known <- c("low", "high", "sum_within", "tables", "terms")
  answers <- reading[setdiff(names(reading), known)]
  as.data.frame(lapply(answers, function(places) {
    found <- sapply(unlist(places), function(i) values[[i + 1]])
    if (length(unlist(places)) == 1) as.vector(found) else I(matrix(found, nrow(scores)))
  }))
}
