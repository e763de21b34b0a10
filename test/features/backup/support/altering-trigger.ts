import { isPostgresUrl } from '../../../../src/store/postgres-address.ts';

/** SQL for a trigger that changes a column of each new row. */
export function alteringTrigger(database: string, table: string, column: string): string[] {
  if (!isPostgresUrl(database))
    return [`create trigger alter_row after insert on ${table} begin update ${table} set ${column} = 7; end`];
  return [
    `create function alter_row() returns trigger language plpgsql as 'begin new.${column} = 7; return new; end'`,
    `create trigger alter_row before insert on ${table} for each row execute function alter_row()`,
  ];
}
