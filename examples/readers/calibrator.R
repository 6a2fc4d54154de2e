# Applies a calibrator of two classes that vennforest has written as JSON.
#   source("calibrator.R"); apply_calibrator(read_calibrator("calibrator.json"), c(0.2, 0.7))
library(jsonlite)

read_calibrator <- function(path) {
  document <- fromJSON(path)
  if (document$format != "vennforest-calibrator" || document$version != 1 ||
      is.null(document$reading))
    stop(path, " must be a calibrator with a table or a sigmoid")
  document$reading
}

sigmoid <- function(curve, s) {
  if (!is.null(curve$low)) {
    s <- pmin(pmax(s, curve$low), curve$high)
    s <- log(s) - log1p(-s)
  }
  z <- (s / curve$unit - curve$centre) / curve$spread
  1 / (1 + exp(-(curve$slope * z + curve$intercept)))
}

apply_calibrator <- function(reading, s) {
  taken <- !is.na(s) & s >= reading$low & s <= reading$high
  s[!taken] <- NA
  if (is.null(reading$steps)) return(data.frame(p = sigmoid(reading$sigmoid, s)))
  at <- findInterval(s, reading$steps$start)
  found <- lapply(reading$steps[c("p0", "p1", "p")], function(column) column[at])
  if (is.null(reading$steps$p))
    found$p <- pmin(pmax(sigmoid(reading$sigmoid, s), found$p0), found$p1)
  as.data.frame(Filter(Negate(is.null), found))
}
