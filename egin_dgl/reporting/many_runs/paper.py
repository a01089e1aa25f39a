"""The published numbers: "Edged Weisfeiler-Lehman Algorithm" (Yue, Liu, Zhang, Qu, ICANN 2024), Experimental results 1 and 2.

Test accuracy in %, mean ± std over 10 folds. The paper mentions no validation set: its protocol is closest to `common_epoch`
of `cv=paper`.
"""

from typing import NamedTuple

SOURCE = "Yue, Liu, Zhang, Qu: Edged Weisfeiler-Lehman Algorithm, ICANN 2024"

# The columns of both tables, by their names in the TU collection.
DATASETS = (
    *("MUTAG", "AIDS", "COX2_MD", "Cuneiform", "ER_MD", "PTC_FM"),
    *("PTC_FR", "PTC_MM", "PTC_MR", "Tox21_AhR_evaluation", "Tox21_AR_evaluation", "Tox21_ARE_evaluation"),
)

TABLES = """
          | MUTAG      AIDS      COX2_MD    Cuneiform  ER_MD     PTC_FM    | PTC_FR     PTC_MM    PTC_MR    AhR       AR        ARE
DGCNN     | 84.2±9.4   98.3±0.9  55.1±5.7   38.0±7.9   73.4±8.0  54.1±5.7  | 58.5±6.3   54.2±6.9  54.7±6.1  83.7±3.5  96.5±1.8  74.5±4.1
GAT       | 83.8±11.1  94.6±1.4  62.4±10.4  76.9±8.4   58.5±6.9  59.0±9.2  | 67.1±9.1   65.0±8.2  56.6±8.3  87.4±3.7  96.9±1.4  82.3±3.3
GIN       | 87.4±6.7   93.4±1.8  52.8±6.8   21.2±3.9   59.7±7.1  55.2±10.2 | 61.8±10.4  60.4±9.5  52.0±9.9  82.8±5.8  94.8±2.3  81.7±2.5
EGCN      | 87.9±9.6   94.8±1.2  63.7±8.9   77.5±10.1  78.6±8.9  59.1±7.0  | 67.5±9.1   66.0±8.6  58.4±5.8  86.4±3.7  96.6±0.7  82.5±4.1
EGIN      | 92.5±3.1   99.7±0.2  68.1±6.2   87.3±3.4   75.9±6.4  62.4±9.2  | 66.0±4.2   62.3±7.2  60.1±6.3  88.1±4.4  96.8±1.3  83.2±4.5
EGIN-ε    | 90.2±3.5   99.6±0.2  65.1±8.4   89.3±4.7   77.5±5.1  63.1±7.6  | 66.5±6.4   63.0±8.5  60.9±7.7  88.6±4.5  97.6±1.5  83.9±4.2
EGIN-C    | 92.8±2.7   99.4±0.3  74.2±5.1   88.6±5.5   78.0±4.9  62.6±8.2  | 67.6±4.8   63.7±7.1  60.1±5.5  88.3±4.2  98.1±1.2  84.2±4.9
EGIN-C-ε  | 91.1±2.1   99.6±0.4  73.4±5.4   89.0±4.7   80.7±4.2  62.9±7.5  | 68.9±5.3   65.6±6.4  62.2±4.2  87.4±4.9  97.9±1.4  84.6±4.7
EGIN-E    | 89.0±4.1   99.6±0.3  67.1±7.4   91.3±4.8   76.4±4.8  62.1±5.6  | 66.2±5.1   64.8±8.4  61.0±8.3  88.3±5.8  96.6±1.8  84.2±4.9
EGIN-E-ε  | 88.8±4.2   99.6±0.3  64.1±7.9   91.7±3.8   75.3±5.0  63.4±7.7  | 66.5±5.7   64.9±8.1  59.4±8.6  89.4±4.5  96.9±1.7  84.4±4.2
"""


class Published(NamedTuple):
    """A published accuracy in %."""

    mean: float
    std: float


def parse_tables(text: str) -> dict[tuple[str, str], Published]:
    numbers = {}
    for line in text.strip("\n").splitlines()[1:]:
        model, *values = line.replace("|", " ").split()
        for dataset, value in zip(DATASETS, values, strict=True):
            mean, std = value.split("±")
            numbers[model, dataset] = Published(float(mean), float(std))
    return numbers


PUBLISHED = parse_tables(TABLES)  # by (model, dataset)
