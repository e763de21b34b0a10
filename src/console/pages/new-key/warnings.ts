import { ALL_ACCESS } from '../../../keys/permissions/built-in.ts';

/** What of a key somebody should think about before they create it. */
export interface ReviewedKey {
  /** Roles and permissions. */
  readonly grants: readonly string[];
  /** Everything that they allow together, as `RESOURCE:ACTION`. */
  readonly permissions: readonly string[];
  readonly expiresAt: string | null;
  readonly allowFrom: readonly string[] | null;
}

/** What is dangerous about a permission, beyond what it says itself. */
const DANGERS: Readonly<Record<string, string>> = {
  'API_KEY:CREATE_ANY': 'It may create keys, and see and refuse what applications ask for.',
  'API_KEY:CREATE_OWN': 'It may create keys of its own, which do no more than it does and end with it.',
  'API_KEY:READ_ANY': 'It may see all keys, what they may do and when they were used, though no secret.',
  'API_KEY:UPDATE_ANY': 'It may change, disable and rotate all keys.',
  'API_KEY:DELETE_ANY': 'It may delete all keys.',
  'ACTIVATION_CODE:READ_ANY': 'It may read activation codes, which are credentials.',
  'PERMISSION:UPDATE_ANY': 'It may change permissions.',
  'CONFIG:UPDATE_ANY': 'It may change the configuration.',
  'LOGS:READ_ANY': 'It may read the audit log: who did what, and from where.',
};

const LONG_MS = 366 * 86_400_000;

/** What to think about, the worst first. */
export function warningsAbout({ grants, permissions, expiresAt, allowFrom }: ReviewedKey, now: number): string[] {
  const held = new Set(permissions);
  const isAdmin = grants.includes(ALL_ACCESS);
  if (held.has('API_KEY:CREATE_ANY')) held.delete('API_KEY:CREATE_OWN');
  const dangers = Object.entries(DANGERS).filter(([permission]) => held.has(permission));
  return [
    ...(isAdmin ? [`The role ${ALL_ACCESS} allows everything, now and later. Few keys need it.`] : []),
    ...(isAdmin ? [] : dangers.map(([permission, danger]) => `${permission}: ${danger}`)),
    ...(expiresAt === null
      ? ['It never expires: if it leaks, it works until somebody notices.']
      : Date.parse(expiresAt) - now > LONG_MS
        ? ['It lasts for more than a year: if it leaks, it works until somebody notices.']
        : []),
    ...(allowFrom === null ? ['It may be used from anywhere. Name networks if you know from where it is used.'] : []),
  ];
}
