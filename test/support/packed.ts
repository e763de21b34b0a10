import { packPackage } from './host.ts';
import { tempFolder } from './temp.ts';

/** Packs the package once for all tests of the suite, and makes a folder for packages that hosts share. */
export async function mochaGlobalSetup(): Promise<void> {
  process.env['PACKED_FILE'] = await packPackage();
  process.env['INSTALLED_HOSTS'] = tempFolder();
}
