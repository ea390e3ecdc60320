{# A relation that stands for a sample of itself:

     select avg(price) from {{ qbeast_sample(ref('orders'), 0.01) }}

   Without a fraction, it uses that of the run (`--vars '{qbeast_sample: 0.01}'` or the target's
   `sample`), which ref() has already applied. In a unit test, it is all rows of the fixture. #}
{% macro qbeast_sample(relation, fraction=none) %}
  {% if not execute %}
    {{ return(relation) }}
  {% endif %}
  {% if fraction is none %}
    {% set is_unit_test = model is defined and model.resource_type == 'unit_test' %}
    {% if adapter.qbeast_fraction_of_run() is none and not is_unit_test %}
      {% do exceptions.raise_compiler_error(
          "qbeast_sample() needs a fraction: qbeast_sample(" ~ relation ~ ", 0.01), or run dbt with "
          ~ "--vars '{qbeast_sample: 0.01}'") %}
    {% endif %}
    {{ return(relation) }}
  {% endif %}
  {{ return(adapter.qbeast_sampled(relation, fraction)) }}
{% endmacro %}


{# The whole query of a model that stores a sample of another model:

     {{ config(materialized='qbeast', columns_to_index=['ts']) }}
     {{ sample_of(ref('orders'), 0.01) }} #}
{% macro sample_of(relation, fraction=none) -%}
  select * from {{ qbeast_sample(relation, fraction) }}
{%- endmacro %}
