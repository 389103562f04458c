"""Golden numbers for crates/polystep-study: AUROC and AUPRC from scikit-learn, McNemar and Wilson from SciPy.

    pip install scikit-learn scipy
    python reference/sklearn_golden.py > crates/polystep-study/tests/golden/sklearn.json

AUPRC is scikit-learn's `average_precision_score`: the step function over distinct scores, not the trapezoid. A margin of
+infinity (fewer than two finished beams) is given to scikit-learn as 1e300: only the order of scores matters.
"""

import json
import random

import scipy.stats
import sklearn
from sklearn.metrics import average_precision_score, roc_auc_score


def ranking(name, labels, scores):
    finite = [1e300 if s == "inf" else s for s in scores]
    return {
        "name": name,
        "labels": labels,
        "scores": scores,
        "auroc": float(roc_auc_score(labels, finite)),
        "auprc": float(average_precision_score(labels, finite)),
    }


def margins(rng, n, right, digits):
    """Margins as a trained model gives them: large where it is right, small where it is wrong; rounded, so that some tie."""
    labels = [int(rng.random() < right) for _ in range(n)]
    scores = [round(rng.gammavariate(4.0, 3.0) if y else rng.gammavariate(1.2, 1.5), digits) for y in labels]
    return labels, scores


def main():
    rng = random.Random(20)
    cases = [
        ranking("perfect", [0, 0, 1, 1], [0.1, 0.4, 5.0, 7.0]),
        ranking("scikit-learn's own example", [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]),
        ranking("upside down", [1, 1, 0], [1.0, 2.0, 3.0]),
        ranking("all tied", [1, 0, 1, 1, 0], [2.0] * 5),
        ranking("ties across classes", [1, 0, 1, 0, 1, 1], [3.0, 3.0, 2.0, 1.0, 1.0, 1.0]),
        ranking("infinite margins", [1, 0, 1, 0, 1], ["inf", "inf", 6.0, 0.5, 0.25]),
        ranking("300 margins, many ties", *margins(rng, 300, 0.9, 0)),
        ranking("400 margins, few ties", *margins(rng, 400, 0.8, 2)),
    ]
    pairs = [(0, 0), (1, 9), (5, 5), (0, 1), (3, 14), (40, 61), (0, 60), (120, 75), (700, 650), (5, 1200)]
    mcnemar = [{"b": b, "c": c, "p": float(scipy.stats.binomtest(b, b + c).pvalue) if b + c else 1.0} for b, c in pairs]
    wilson = []
    for count, of in [(0, 20), (20, 20), (1, 1), (946, 1000), (1000, 1000), (4723, 5000), (15, 148)]:
        interval = scipy.stats.binomtest(count, of).proportion_ci(0.95, "wilson")
        wilson.append({"count": count, "of": of, "lo": float(interval.low), "hi": float(interval.high)})
    versions = {"scikit-learn": sklearn.__version__, "scipy": scipy.__version__}
    golden = {"made_by": "reference/sklearn_golden.py", "versions": versions, "ranking": cases, "mcnemar": mcnemar, "wilson": wilson}
    print(json.dumps(golden))


main()
