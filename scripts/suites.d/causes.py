"""Why a case that passes on Apache Kafka may fail on Coreline: capabilities that it does not have yet, nothing else.

Of each: which suites, which cases (regular expressions), the cause as the README's table tells it.
"""

TRANSACTIONS = "transactions"
CONSUMER_PROTOCOL = "the consumer group protocol of KIP-848"
SHARE_GROUPS = "share groups"

CAUSES = [
    ("franz-go.*", r"^TestTxnEtl", TRANSACTIONS),
    ("franz-go.*", r"Share", SHARE_GROUPS),
    ("franz-go.*", r"848", CONSUMER_PROTOCOL),
    ("kafka-python", r"::test_transactional_", TRANSACTIONS),
    ("rdkafka", r"^test_transactions::", TRANSACTIONS),
]
