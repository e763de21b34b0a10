import { PermissionSet } from '../../../keys/permissions/permission-set.ts';
import { permissionsOf } from '../../parts/grants.ts';
import type { Permission } from '../../../keys/permissions/catalog.ts';
import type { Visit } from '../../visit.tsx';
import type { ShownKey } from './shown-key.ts';

/** What is worth offering to do to a key. Whether it is done, GraphQL decides. */
export interface Rights {
  /** Change it, or disable it. */
  readonly update: boolean;
  readonly delete: boolean;
  /** Let it do more than now, which takes all that it may do: enable it, or give it another secret. */
  readonly widen: boolean;
  /** Whether it is the key that the person has signed in with. */
  readonly isSelf: boolean;
  /** Whether they have done so with a previous secret, which changes no key. */
  readonly isPrevious: boolean;
}

/** What the person may do to a key. It owns itself, and the keys that it created. */
export function rightsOver(visit: Visit, key: ShownKey): Rights {
  const { key: own, secret, access } = visit.principal;
  const isSelf = key.id === own.id;
  const isOwn = isSelf || key.createdBy === own.id;
  const isPrevious = secret === 'previous';
  const may = (verb: 'UPDATE' | 'DELETE') => !isPrevious && visit.may(`API_KEY:${verb}_${isOwn ? 'OWN' : 'ANY'}`);
  const isBeneath = isOwn || key.limitedBy.some(({ keyId }) => keyId === own.id);
  return {
    update: may('UPDATE'),
    delete: may('DELETE'),
    widen: may('UPDATE') && (isBeneath || grantedTo(key).missingFrom(access).length === 0),
    isSelf,
    isPrevious,
  };
}

/** All that the grants of a key say, whatever the keys above it take away. */
export function grantedTo({ effectivePermissions, limitedBy }: ShownKey): PermissionSet {
  const taken = limitedBy.flatMap(({ permissions }) => permissions);
  return new PermissionSet(permissionsOf([...effectivePermissions, ...taken]) as Permission[]);
}
