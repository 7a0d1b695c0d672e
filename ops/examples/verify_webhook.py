"""Verifies a webhook message with the Standard Webhooks library: pip install standardwebhooks==1.1.0"""

from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def read_message(secret, headers, body):
    """Returns the message, or None if the signature is wrong or the timestamp is more than five minutes off.

    `secret` is the one that the registration returned ("whsec_…"), `headers` a dict, `body` the request body as it arrived.
    """
    try:
        return Webhook(secret).verify(body, headers)
    except WebhookVerificationError:
        return None
