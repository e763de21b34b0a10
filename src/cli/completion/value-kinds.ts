import { COLUMN_NAMES } from '../views/key-columns.ts';
import { AUDIT_ACTIONS } from '../../keys/audit/audit-entry.ts';
import { STATUSES } from '../../keys/key/status.ts';
import { PERIODS } from '../../keys/usage/periods.ts';

/** What stands for a value: a file, a folder, the name of a key, a role, a permission, or one of a few texts. */
export type ValueKind = 'files' | 'folders' | 'names' | 'roles' | 'permissions' | readonly string[];

const KINDS_OF_FLAGS: Readonly<Record<string, ValueKind>> = {
  database: 'files',
  config: 'files',
  file: 'files',
  to: 'files',
  'secrets-dir': 'folders',
  name: 'names',
  key: 'names',
  actor: 'names',
  'bring-back': 'names',
  roles: 'roles',
  permissions: 'permissions',
  permission: 'permissions',
  status: STATUSES.map((status) => status.toLowerCase()),
  action: AUDIT_ACTIONS,
  columns: COLUMN_NAMES,
  activate: ['now', 'on-first-use'],
  by: PERIODS.map((period) => period.toLowerCase()),
};

const KINDS_OF_ARGUMENTS: Readonly<Record<string, ValueKind>> = {
  name: 'names',
  permission: 'permissions',
  file: 'files',
  path: 'files',
  method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
};

/** What a flag takes; undefined for any text. */
export function kindOfFlag(flag: string): ValueKind | undefined {
  return Object.hasOwn(KINDS_OF_FLAGS, flag) ? KINDS_OF_FLAGS[flag] : undefined;
}

/** What an argument is; undefined for any text. */
export function kindOfArgument(argument: string): ValueKind | undefined {
  return Object.hasOwn(KINDS_OF_ARGUMENTS, argument) ? KINDS_OF_ARGUMENTS[argument] : undefined;
}

/** Whether the name that a command is given is that of a new key, so that there is none to offer. */
export function namesNewKey(command: string, flags: ReadonlyMap<string, string>): boolean {
  if (command === 'apikey:exec') return true;
  const creates = command === 'apikey:create' || (command === 'apikey' && !flags.has('delete'));
  return creates && !flags.has('overwrite');
}
