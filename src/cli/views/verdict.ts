import type { Catalog, Permission } from '../../keys/permissions/catalog.ts';
import { grantsBehind } from '../../keys/authorization/explain.ts';
import type { Identification } from '../../keys/authentication/identify.ts';
import { prefixOf } from '../../keys/secret/secret.ts';
import { formatTime } from '../../keys/time.ts';

type Known = Extract<Identification, { key: unknown }>;
type Unknown = Exclude<Identification, Known>;

export interface Verdict {
  valid: boolean;
  reason: 'malformed' | 'unknown' | 'disabled' | 'expired' | 'rotated' | 'forbidden' | null;
  /** Whether the secret is let do what was asked for; null where nothing was. */
  permitted: boolean | null;
  text: string;
}

const REASONS = { DISABLED: 'disabled', EXPIRED: 'expired', ROTATED: 'rotated' } as const;

/** What is to be said of a secret, and of whether it may do something, if that is asked for. */
export function verdictOn(found: Identification, permission: Permission | undefined, catalog: Catalog): Verdict {
  const refused = { valid: false, permitted: permission === undefined ? null : false };
  if ('unknown' in found) return { ...refused, reason: found.unknown, text: `not valid: ${unknownText(found)}` };
  const text = `API key "${found.key.name}" (${prefixOf(found.publicId)}), ${statusText(found)}`;
  if (found.status !== 'ACTIVE') return { ...refused, reason: REASONS[found.status], text: `not valid: ${text}` };
  if (permission === undefined) return { valid: true, reason: null, permitted: null, text: `valid: ${text}` };
  const permitted = grantsBehind(found.key, permission, catalog).length > 0;
  const access = `${permitted ? 'has' : 'lacks'} ${permission}`;
  return { valid: true, reason: permitted ? null : 'forbidden', permitted, text: `valid: ${text}, ${access}` };
}

function unknownText({ unknown, publicId }: Unknown): string {
  if (unknown === 'malformed') return 'malformed, its form or its checksum is wrong';
  return `unknown, no API key has this secret${publicId === undefined ? '' : ` (${prefixOf(publicId)})`}`;
}

function statusText({ key, status, publicId }: Known): string {
  if (status === 'ROTATED') return 'ROTATED, a newer secret has replaced this one';
  if (status === 'DISABLED') return `DISABLED since ${formatTime(key.disabledAt)}`;
  if (status === 'EXPIRED') return `EXPIRED since ${formatTime(key.expiresAt)}`;
  const end = key.expiresAt === null ? 'does not end' : `ends ${formatTime(key.expiresAt)}`;
  if (publicId === key.publicId) return `ACTIVE, ${end}`;
  const last = key.rotation?.previousEndsAt ?? null;
  return `ACTIVE, ${end}; this is the secret before its newest, and ends ${last === null ? 'some time after that is used' : formatTime(last)}`;
}
