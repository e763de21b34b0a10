import { BaseCommand } from '../base-command.ts';
import { hiddenServerFlags } from '../remote/place-flags.ts';
import { KeyCommand } from './key-command.ts';

/** What the commands about keys share that need the key store itself, and say so where a server is named. */
export abstract class StoreCommand extends KeyCommand {
  static override baseFlags = { ...BaseCommand.baseFlags, ...hiddenServerFlags };
}
