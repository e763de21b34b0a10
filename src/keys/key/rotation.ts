import type { Issue } from '../errors.ts';
import { readDuration } from '../time.ts';
import { printable } from '../text.ts';

/** The secret that a key had before its newest one, and for how long it still works. */
export interface Rotation {
  previousPublicId: string;
  /** Milliseconds since 1970. */
  startedAt: number;
  /** How long the secret before works after the new one counts, in milliseconds. */
  grace: number;
  /** When the secret before ends, in milliseconds since 1970; null while the new one has not been used yet. */
  previousEndsAt: number | null;
}

/** When the grace begins: at once, or when the new secret is first used. */
export const ACTIVATIONS = ['NOW', 'ON_FIRST_USE'] as const;
export type Activation = (typeof ACTIVATIONS)[number];

/** How a key is to get a new secret, as the user wrote it. */
export interface RotationRequest {
  /** A duration such as `24h`, which is also the default; `0s` for none. */
  grace?: string | null | undefined;
  /** `now`, which is the default, or `on-first-use`. */
  activate?: string | null | undefined;
}

export const DEFAULT_GRACE = '24h';

/** Whether the secret before still works, so that the key has two. */
export function isInProgress(rotation: Rotation | null, now: number): rotation is Rotation {
  return rotation !== null && (rotation.previousEndsAt === null || now < rotation.previousEndsAt);
}

/** Reads how a key is to get a new secret, or what is wrong with it. */
export function readRotation({ grace, activate }: RotationRequest): {
  grace: number;
  activate: Activation;
  issues: Issue[];
} {
  const text = grace ?? DEFAULT_GRACE;
  const duration = /^0+[smhdw]?$/i.test(text.trim()) ? 0 : readDuration(text);
  const wanted = (activate ?? 'now').trim().toUpperCase().replaceAll('-', '_');
  const activation = ACTIVATIONS.find((name) => name === wanted);
  const issues: Issue[] = [];
  if (duration === undefined) {
    const message = `"${printable(text)}" is not a duration. Write a number with s, m, h, d or w, such as 90m or 24h, or 0s for none.`;
    issues.push({ code: 'EXPIRY_INVALID', message });
  }
  if (!activation)
    issues.push({
      code: 'USAGE',
      message: `"${printable(activate ?? '')}" is no activation. It is now or on-first-use.`,
    });
  return { grace: duration ?? 0, activate: activation ?? 'NOW', issues };
}
