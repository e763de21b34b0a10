import { aFunction, required, type Rules } from '../basics/index.ts';
import type { ApiKey } from '../key/index.ts';

/** A key with its new secret: the only time that the secret is known. */
export interface NewSecret {
  /** The secret. */
  key: string;
  /** The key that it belongs to. */
  apiKey: ApiKey;
}

/** Delivers the secrets of a change. If a step throws, which must be a `KeysError`, the change is reverted. */
export interface SecretDelivery<Change> {
  /** Called before requesting a change whose secrets come from elsewhere. */
  begin?: () => void;
  /**
   * Saves the secrets before the change is committed. The write lock is held, so it must not wait for anything. It is
   * called again if the database asks for the transaction to be repeated.
   */
  prepare?: (change: Change) => void;
  /** Delivers the secrets after the change was committed. */
  deliver: (change: Change) => void | Promise<void>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- of any change
export const DELIVERY_OPTIONS: Rules<SecretDelivery<any>> = {
  begin: aFunction(),
  prepare: aFunction(),
  deliver: required(aFunction()),
};

export function presented<Change, Shown>(
  { prepare, deliver }: SecretDelivery<Shown>,
  present: (change: Change) => Shown,
): SecretDelivery<Change> {
  return {
    prepare: (change) => prepare?.(present(change)),
    deliver: (change) => deliver(present(change)),
  };
}
