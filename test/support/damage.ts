import { isPostgresUrl } from '../../src/store/postgres/postgres-address.ts';
import { changeDirectly } from './direct.ts';

/** Changes a key by SQL as a fault of the disk would: its checksum stays as it was. */
export async function damageKey(store: string, name: string, change: string): Promise<void> {
  const isPostgres = isPostgresUrl(store);
  await changeDirectly(
    store,
    `drop trigger if exists api_keys_without_checksum${isPostgres ? ' on api_keys' : ''}`,
    `update api_keys set ${change} where name = '${name}'`,
  );
}
