"""What the doctor looks at, a module a subject. Law: a look changes nothing, and none keeps another from looking."""
