import { type Migration, MIGRATIONS } from '../../src/store/migrations.ts';

/** Runs `work` as a later version of the program would, with one more migration. */
export async function withNextSchema<Result>(migrate: Migration, work: () => Promise<Result>): Promise<Result> {
  const migrations = MIGRATIONS as Migration[];
  migrations.push(migrate);
  try {
    return await work();
  } finally {
    migrations.pop();
  }
}
