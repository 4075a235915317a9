"""The papers' claims, in our words, by experiment. Notes tell where a paper contradicts itself."""

from __future__ import annotations

from dataclasses import dataclass

KAO_A = "Kao et al. 2020"
KAO_B = "Kao et al. 2021"
SINGH = "Singh & Giovanardi 2020"
KOVALEVA = "Kovaleva et al. 2019"


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, in our words; ``key`` names it within its experiment."""

    experiment: str
    key: str
    what: str
    words: str
    paper: str
    place: str
    note: str = ""

    @property
    def source(self) -> str:
        """The paper and the place in it."""
        return f"{self.paper}, {self.place}"


CLAIMS: tuple[Claim, ...] = (
    Claim("decoding", "inner depths", "inner depths that give back at least 80 % of the tokens",
        "those of most models, except depth 0 and BERT-large", KAO_B, "section 4.1"),
    Claim("decoding", "first token", "the token after [CLS], last depth",
        "59 % over SST-2, far below the average token", KAO_B, "section 4.1"),
    Claim("decoding", "control", "whether skip connections and LayerNorm alone explain it",
        "almost impossible to claim", KAO_B, "section 4.1",
        "argued from the gap between BERT-base and BERT-large; no control was run"),
    Claim("decoding", "fine-tuned", "what fine-tuning changes", "only the last few layers", KAO_A,
        "section 2.2", "Kao et al. 2021 says so for BERT models only"),
    Claim("decoding", "deeper", "decoding the last state as depth grows",
        "ALBERT-base holds for about 6 extra layers, ALBERT-large about 80 % at 50 layers", KAO_B,
        "section 4.1", "the 80 % is from Kao et al. 2020, section 2.2"),
    Claim("decoding", "xlarge", "decoding ALBERT-xlarge as depth grows",
        "drops more quickly, as xxlarge does", KAO_B, "section 4.1",
        "Kao et al. 2020 names xxlarge alone"),
    Claim("layer-removal", "removal", "what removing most layers changes",
        "the outputs would not change", KAO_B, "abstract", "no table or figure shows a removal"),
    Claim("duplication", "gain", "best gain from duplicated layers after fine-tuning",
        "about 1 F1 and 1.5 EM on SQuAD 2.0, 0.6 points on SNLI", KAO_A, "section 3.2",
        "the other paper's tables show at most 0.24 on SNLI, the suspect cell aside"),
    Claim("duplication", "how many", "how many layers to add",
        "one is enough for BERT, ALBERT usually needs more", KAO_B, "section 4.2"),
    Claim("duplication", "easy task", "gain on SST-2",
        "hardly any; only ALBERT-xlarge and -xxlarge improve", KAO_A, "section 3.2, appendix B",
        "the other paper's Table 4 has a gain of 0.05 for ALBERT-base at 17 layers"),
    Claim("duplication", "bert-large", "gain for BERT-large", "none is better than the baseline",
        KAO_B, "section 4.2", "its Table 3 shows 91.94 on SNLI against 91.84"),
    Claim("duplication", "rule 1", "one layer duplicated many times", "hurts the performance",
        KAO_B, "section 4.2"),
    Claim("duplication", "rule 2", "the last layers duplicated instead of the first",
        "does not benefit the performance", KAO_B, "section 4.2"),
    Claim("ensembling", "ensembles", "ensembles over depths against three seeds",
        "certainly boost the performance on SQuAD 2.0", KAO_B, "section 4.2",
        "F1 of the top-3 ensembles of ALBERT-base and -xxlarge is below the baseline's"),
    Claim("reinitialization", "little data", "a pre-trained model on 1 % of SST-2",
        "better than one trained from scratch on 10 or 100 times the data", SINGH, "section 6.1.1"),
    Claim("reinitialization", "middle layers", "middle layers re-initialised, small SST-2",
        "cost about 5 points", SINGH, "section 6.1.3"),
    Claim("reinitialization", "qnli", "where QNLI falls",
        "when the first 3, 4, 5 layers go, with 100, 10, 1 % of the data", SINGH, "section 6.1.2",
        "section 6.1.3 says the first four for 0.6 %"),
    Claim("reinitialization", "cola", "CoLA", "falls about linearly", SINGH, "section 6.1.4"),
    Claim("reinitialization", "last layers", "the last layers", "hardly matter", SINGH,
        "section 6.2"),
    Claim("frozen-probing", "peak", "highest score", "lower than with partial re-initialisation",
        SINGH, "section 6.2"),
    Claim("frozen-probing", "top layers", "the highest two layers", "hurt on SST-2 and QNLI", SINGH,
        "section 6.2"),
    Claim("frozen-probing", "decline", "as layers are removed",
        "SST-2 falls gradually, QNLI steeply at the sixth layer", SINGH, "section 6.2"),
    Claim("frozen-probing", "cola", "Matthews correlation on CoLA", "zero at all but two points",
        SINGH, "appendix B"),
    Claim("weight-drift", "depth", "distance from the pre-trained weights", "grows with depth",
        SINGH, "section 6.3"),
    Claim("weight-drift", "data", "with more training data", "shifts up, and grows more steeply",
        SINGH, "section 6.3", "more data also meant more updates"),
    Claim("weight-drift", "cola", "CoLA", "a more noisy pattern", SINGH, "appendix B"),
    Claim("attention-patterns", "heterogeneous", "share of heterogeneous maps",
        "at most 32 % (MRPC) to 61 % (QQP)", KOVALEVA, "BERT's self-attention patterns",
        "an upper bound; the classifier's F1 is 0.86"),
    Claim("frame-relations", "heads", "heads that follow core frame elements", "2 of 144", KOVALEVA,
        "Relation-specific heads"),
    Claim("frame-relations", "importance", "disabling either of them",
        "no drop of accuracy on any GLUE task", KOVALEVA, "Discussion"),
    Claim("attention-drift", "layers", "layers whose attention changes most",
        "the last two, on all tasks except QQP", KOVALEVA, "Change in self-attention patterns"),
    Claim("initialization", "gain", "fine-tuned against pre-trained alone",
        "35.9 points higher on average", KOVALEVA, "Change in self-attention patterns",
        "the pre-trained model had an untrained classifier"),
    Claim("initialization", "start", "fine-tuned from random weights, against pre-trained ones",
        "consistently lower", KOVALEVA, "Change in self-attention patterns"),
    Claim("initialization", "random", "fine-tuned from random weights",
        "worse than pre-trained alone on STS-B and QNLI", KOVALEVA,
        "Change in self-attention patterns"),
    Claim("linguistic-features", "special", "what vertical attention is on",
        "predominantly [CLS] (earlier layers) and [SEP] (later layers)", KOVALEVA,
        "Attention to linguistic features"),
    Claim("linguistic-features", "features", "increases through fine-tuning",
        "nouns and direct objects on MRPC, RTE, QQP, negation on QNLI; negligible"
        " compared with [CLS] and [SEP]", KOVALEVA, "Attention to linguistic features"),
    Claim("token-links", "diagonal", "heads for verb–subject and noun–pronoun links",
        "coincide with diagonal heads", KOVALEVA, "Token-to-token attention"),
    Claim("token-links", "cls", "what [CLS] attends to most in the output layer",
        "[SEP], except on STS-B, RTE, QNLI (punctuation)", KOVALEVA, "Token-to-token attention"),
    Claim("token-links", "overlap", "words that occur in both sentences (STS-B, RTE)",
        "high weights in heads 3.0 and 1.11", KOVALEVA, "Discussion",
        "counted from 1 there: head 1 in the fourth layer, head 12 in the second"),
    Claim("head-disabling", "best head", "best gain from disabling one head",
        "+0.1 (STS-B) to +1.2 points (MRPC)", KOVALEVA, "Disabling self-attention heads",
        "picked and scored on the same rows"),
    Claim("head-disabling", "random head", "disabling a random head, on average",
        "an increase on MRPC and RTE", KOVALEVA, "Disabling self-attention heads"),
    Claim("head-disabling", "some heads", "heads whose disabling helps", "some on every task",
        KOVALEVA, "Disabling self-attention heads", "not tested against chance"),
    Claim("head-disabling", "whole layer", "disabling a whole layer",
        "improves too, up to +3.2 points (RTE, first layer); QNLI and MNLI lose up to 0.2",
        KOVALEVA, "Disabling self-attention heads"),
)  # fmt: skip


def claims(experiment: str) -> tuple[Claim, ...]:
    """What the papers say about an experiment, in words."""
    return tuple(claim for claim in CLAIMS if claim.experiment == experiment)
