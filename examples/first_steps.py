# %% [markdown]
# # First steps
#
# A forest's probabilities against what happens, the same calibrated out of bag, and what the bounds
# say. The notebook is written from `first_steps.py` by `make -f tools/Makefile notebook`.

# %%
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import brier_score_loss, log_loss

from vennforest import CalibratedClassifier

rng = np.random.default_rng(0)


def draw(n):
    """Return n cases: features, labels, and the probabilities that these were drawn with."""
    X = rng.normal(size=(n, 5))
    p = 1 / (1 + np.exp(-5 * X[:, 0] + 4 * X[:, 1] * X[:, 2]))
    return X, (rng.random(n) < p).astype(int), p


X, y, _ = draw(1000)
X_new, y_new, truth = draw(2000)

# %% [markdown]
# ## The forest alone
#
# The labels have little noise: most cases are nearly certain, if one knows them. Among those that
# the forest calls 85 to 95% likely, how many happen?

# %%
forest = RandomForestClassifier(200, random_state=0).fit(X, y)
raw = forest.predict_proba(X_new)[:, 1]
chosen = (raw > 0.85) & (raw < 0.95)
print(f"{chosen.sum()} cases, mean estimate {raw[chosen].mean():.3f}, ", end="")
print(f"happened {y_new[chosen].mean():.3f}")

# %% [markdown]
# ## Calibrated
#
# The same forest; each training row is scored by the trees that did not see it.

# %%
model = CalibratedClassifier(forest, random_state=0).fit(X, y)
p = model.predict_proba(X_new)[:, 1]
for name, q in [("forest", raw), ("calibrated", p), ("true probabilities", truth)]:
    print(f"{name:20s} log loss {log_loss(y_new, q):.4f}, Brier {brier_score_loss(y_new, q):.4f}")

# %% [markdown]
# ## The bounds
#
# p0 and p1: what the probability would be if the case turned out not to have the event, and if it
# did. On average they hold the share of events.

# %%
m = model.predict_multiprobability(X_new)
print(f"mean p0 {m.p0.mean():.3f}, observed {y_new.mean():.3f}, mean p1 {m.p1.mean():.3f}")
print(f"widest {m.width[:, 1].max():.3f}, narrowest {m.width[:, 1].min():.4f}")

# %% [markdown]
# Fewer rows, wider bounds: that is what they are for.

# %%
for n in (50, 200, 1000):
    few = CalibratedClassifier(RandomForestClassifier(100, random_state=0), random_state=0)
    width = few.fit(X[:n], y[:n]).predict_multiprobability(X_new[:500]).width[:, 1]
    print(f"{n:5d} rows: {width.mean():.3f} wide")

# %% [markdown]
# ## Another method, the same forest

# %%
for method in ("platt", "isotonic", "beta", "venn"):
    q = model.recalibrate(method).predict_proba(X_new)[:, 1]
    print(f"{method:10s} log loss {log_loss(y_new, q):.4f}")
