import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KnownFeatures } from '../../keys/added/index.ts';
import { packageFolder } from '../../version.ts';

/** Names in documents, types, arguments and forms about keys that are not flags. */
const NAMES = new Set(
  (
    'access action activate actor after ancestors answering before branch budgets by change changes confirm ' +
    'created createdAt createdBy createdSince damaged date decision descendants digest disableCreated ' +
    'disabledAt disabledByPolicy effectivePermissions enabled ends excessPermissions expires expiresAt ' +
    'expiresBefore expiry filter first from grace grants headers id ids input issued kept key last lastUsed ' +
    'lastUsedAt limitedBy limits managed may method name newName next order outcome permission person ' +
    'planned prefix previousDigest previousUses publicId replace replaced replaces request role rotate ' +
    'rotation scope secret sha256 since state step suggestedPermissions suggestedRoles tags to unknownFields ' +
    'unknownGrants until unusedPermissions unusedSince url usage used usedPermissions usedRoutes usedTools ' +
    'uses version'
  ).split(' '),
);

/** `--columns` accepts names in any case, with or without hyphens. */
function columnForm(name: string): string {
  return name.toLowerCase().replaceAll('-', '');
}

interface Manifest {
  readonly commands: Readonly<Record<string, { readonly flags: Readonly<Record<string, unknown>> }>>;
  readonly features: KnownFeatures;
}

/** The manifest of oclif, with our commands and features. */
function ownManifest(): Manifest {
  return JSON.parse(readFileSync(join(packageFolder(), 'oclif.manifest.json'), 'utf8')) as Manifest;
}

/** The features of svc-api. */
export function ownFeatures(): KnownFeatures {
  return ownManifest().features;
}

/** Returns a test for names and flags of svc-api itself, which no field of a plugin can have. */
export function takenNames(): (name: string, flag: string) => boolean {
  const { commands } = ownManifest();
  const flags = new Set(Object.values(commands).flatMap((command) => Object.keys(command.flags)));
  const taken = new Set([...NAMES, ...flags].map(columnForm));
  return (name, flag) => taken.has(columnForm(name)) || flags.has(`no-${flag}`);
}
