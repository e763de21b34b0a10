import { isKeysError, KeysError } from '../keys/basics/index.ts';
import type { SecretDelivery } from '../keys/changes/index.ts';

/**
 * Delivers secrets, and reverts the change if that fails.
 * @throws errors of `delivery`; KeysError if the change cannot be reverted
 */
export async function deliver<Change>(
  change: Change,
  delivery: SecretDelivery<Change> | undefined,
  what: string,
  revert: () => Promise<void>,
): Promise<void> {
  try {
    delivery?.prepare?.(change);
    await delivery?.deliver(change);
  } catch (error) {
    await revert().catch((cause: unknown) => {
      const code = isKeysError(cause) ? cause.code : 'SERVER_FAILED';
      const reason = `${what} could not be delivered, and the change not be reverted: ${(cause as Error).message}`;
      throw new KeysError(code, reason, { cause: error });
    });
    throw error;
  }
}
