import {
  anyText,
  durationHint,
  type Issue,
  orNull,
  pastTimeRemedy,
  printable,
  readDuration,
  notPassed,
  readPastTime,
  type Rules,
  UNIT_MS,
  yesOrNo,
} from '../basics/index.ts';

/** A rotation of a key's secret: the previous secret, and how long it still works. */
export interface Rotation {
  /** The public id of the previous secret. */
  previousPublicId: string;
  /** When the key got its new secret, in milliseconds since 1970. Kept when the rotation has ended. */
  startedAt: number;
  /** How long the previous secret works once the grace period has begun, in milliseconds. */
  grace: number;
  /** When the previous secret expires, in milliseconds since 1970; null until the new one is first used. */
  previousEndsAt: number | null;
}

/** When the grace period begins: at once, or with the first use of the new secret. */
export const ACTIVATIONS = ['NOW', 'ON_FIRST_USE'] as const;
/** When the grace period begins. */
export type Activation = (typeof ACTIVATIONS)[number];

/** How to rotate a key's secret, as the user wrote it. */
export interface RotationRequest {
  /** How long the previous secret keeps working: a duration such as `24h` (the default), or `0s`; at most 90 days. */
  grace?: string | null;
  /** When the grace period begins: `now` (the default) or `on-first-use`. */
  activate?: string | null;
  /** Disable the keys that the key has created: after a leak, they may be the thief's. */
  disableCreated?: boolean | null;
  /** Limits `disableCreated` to keys created since this RFC 3339 date and time, or this long ago. */
  createdSince?: string | null;
}

/** The options of a request. Null counts as left out. */
export const ROTATION_OPTIONS: Rules<RotationRequest> = {
  grace: orNull(anyText),
  activate: orNull(anyText),
  disableCreated: orNull(yesOrNo),
  createdSince: orNull(anyText),
};

/** The grace period if none is given. */
export const DEFAULT_GRACE = '24h';
const MAX_GRACE_DAYS = 90;

/**
 * True while the previous secret still works, so that the key has two. Without a grace period it has ended, whatever
 * the clock says.
 */
export function isInProgress(rotation: Rotation | null, now: number): rotation is Rotation {
  if (!rotation || rotation.previousEndsAt === null) return rotation !== null;
  return rotation.grace > 0 && now < rotation.previousEndsAt;
}

/** Since when a key has its secret, in milliseconds since 1970; no later than this, if a rotation was rolled back. */
export function secretSince({ rotation, createdAt }: { rotation: Rotation | null; createdAt: number }): number {
  return rotation?.startedAt ?? createdAt;
}

/**
 * Parses a request to rotate a secret. With issues, the other values are meaningless. `disableSince` is the time since
 * which created keys are disabled, in milliseconds since 1970; null if none are.
 */
export function readRotation(
  { grace, activate, disableCreated, createdSince }: RotationRequest,
  now: number,
): {
  grace: number;
  activate: Activation;
  disableSince: number | null;
  issues: Issue[];
} {
  const text = grace ?? DEFAULT_GRACE;
  const duration = /^0+[smhdw]?$/.test(text.trim()) ? 0 : readDuration(text);
  const wanted = (activate ?? 'now').trim().toUpperCase().replaceAll('-', '_');
  const activation = ACTIVATIONS.find((name) => name === wanted);
  const issues: Issue[] = [];
  if (duration === undefined)
    issues.push(
      notADuration(text, 'grace', 'Write a number with s, m, h, d or w, such as 90m or 24h, or 0s for none.'),
    );
  else if (duration > MAX_GRACE_DAYS * UNIT_MS.d) {
    const message = `"${printable(text)}" is longer than ${MAX_GRACE_DAYS} days. Choose a shorter grace period.`;
    issues.push({ code: 'EXPIRY_INVALID', message, field: 'grace' });
  }
  if (!activation)
    issues.push({
      code: 'USAGE',
      message: `"${printable(activate ?? '')}" is not an activation. Use now or on-first-use.`,
      field: 'activate',
    });
  const since = createdSince == null ? 0 : readPastTime(createdSince, now);
  if (since === undefined) {
    const time = createdSince ?? '';
    const message = `"${printable(time)}" is not a time. ${pastTimeRemedy(time)}`;
    issues.push({ code: 'INPUT_INVALID', message, field: 'createdSince' });
  } else {
    const message = notPassed(createdSince ?? '', since, now);
    if (message !== undefined) issues.push({ code: 'INPUT_INVALID', message, field: 'createdSince' });
  }
  if (createdSince != null && !disableCreated)
    issues.push({
      code: 'USAGE',
      message: 'A time of creation needs the option to disable created keys.',
      field: 'createdSince',
    });
  return {
    grace: duration ?? 0,
    activate: activation ?? 'NOW',
    disableSince: disableCreated ? (since ?? 0) : null,
    issues,
  };
}

/** The issue with a text that is not a duration. */
export function notADuration(text: string, field: string, remedy: string): Issue {
  const message = `"${printable(text)}" is not a duration. ${durationHint(text) ?? remedy}`;
  return { code: 'EXPIRY_INVALID', message, field };
}
