// Verifies a webhook message with the Standard Webhooks library: npm install standardwebhooks@1.1.1
import { Webhook, WebhookVerificationError } from "standardwebhooks";

/**
 * Returns the message, or undefined if the signature is wrong or the timestamp is more than five minutes off.
 *
 * `secret` is the one that the registration returned ("whsec_…"), `body` the request body as it arrived, before any JSON parser.
 */
export function readMessage(secret: string, headers: Record<string, string>, body: string): unknown {
  try {
    return new Webhook(secret).verify(body, headers);
  } catch (error) {
    if (error instanceof WebhookVerificationError) return undefined;
    throw error;
  }
}
