#!/usr/bin/env node
import { program } from 'commander';

program
  .command('hello')
  .description('Says hello.')
  .argument('<person>', 'whom to greet')
  .option('--from <name>', 'who greets', 'commander')
  .action((person, { from }) => console.log(`hello ${person} from ${from}`));
program.parse();
